-- What calls used of this machine's energy, in microjoules, where it was measured. `measured` counts the calls of a day of which
-- `energy_uj` is the sum.
ALTER TABLE telemetry_inference ADD COLUMN energy_uj INTEGER;
ALTER TABLE telemetry_day ADD COLUMN energy_uj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_day ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
