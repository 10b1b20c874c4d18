//! Cutline's traffic generator and meter.
