"""Seeds and draws that all ranks must share, or that must differ between them."""
