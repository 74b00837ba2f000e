"""monarch-plan, on the side of PyTorch: export a model, then plan it."""
