"""Integrations of `offprof.OffloadActivations` with training libraries."""
