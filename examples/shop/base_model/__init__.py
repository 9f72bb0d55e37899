"""Makes the small base model that a campaign starts from: SFT on demonstrations in `shop` with planted lacks."""
