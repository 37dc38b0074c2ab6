"""Lowering: active expressions that need statements of their own are written as statements."""
