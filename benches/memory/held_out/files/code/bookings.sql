-- Rooms of the community hall, and who has them when.

CREATE TABLE room (
    room_id     serial PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    seats       integer NOT NULL CHECK (seats > 0),
    hourly_rate numeric(8, 2) NOT NULL
);

-- Two bookings of one room may touch but not overlap: the exclusion constraint sees to it, whatever the program does.
CREATE TABLE booking (
    booking_id bigserial PRIMARY KEY,
    room_id    integer NOT NULL REFERENCES room,
    during     tstzrange NOT NULL,
    booked_by  text NOT NULL,
    cancelled  timestamptz,
    CONSTRAINT no_double_booking EXCLUDE USING gist (room_id WITH =, during WITH &&) WHERE (cancelled IS NULL)
);

-- Hours that are free today between eight and ten in the evening, per room.
CREATE VIEW free_today AS
SELECT room.name, gaps.gap
FROM room
CROSS JOIN LATERAL unnest(
    tstzmultirange(tstzrange(current_date + time '08:00', current_date + time '22:00'))
    - coalesce((SELECT range_agg(during) FROM booking WHERE booking.room_id = room.room_id AND cancelled IS NULL), '{}')
) AS gaps (gap);

-- What a club owes for a month. Cancelled less than 48 hours before the beginning is paid in full.
CREATE FUNCTION monthly_charge(club text, month date) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT sum(extract(epoch FROM upper(during) - lower(during)) / 3600 * hourly_rate)
    FROM booking JOIN room USING (room_id)
    WHERE booked_by = club AND date_trunc('month', lower(during)) = date_trunc('month', month)
      AND (cancelled IS NULL OR cancelled > lower(during) - interval '48 hours');
$$;
