"""The router, fitted on the train split's outcomes. The same input and seed give the same file."""
