"""Tests of the calculus of differentiation."""
