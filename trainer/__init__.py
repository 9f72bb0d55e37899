"""Python side of campaign: training, the embedded policy server, router fitting and the base models."""
