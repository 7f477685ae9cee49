// Package duration reads lengths of time as people write them: "1h30m", "90 min", "2 days".
package duration

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ErrNoUnit is returned for a bare number: 30 of what?
var ErrNoUnit = errors.New("duration: a number needs a unit")

// ErrUnknownUnit names a unit that is not in the table.
var ErrUnknownUnit = errors.New("duration: unknown unit")

var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "m": time.Minute, "min": time.Minute,
	"h": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "fortnight": 14 * 24 * time.Hour,
}

// ParseHuman adds up all parts of the text. Months and years are refused, because they differ in length.
func ParseHuman(text string) (time.Duration, error) {
	var total time.Duration
	rest := strings.TrimSpace(strings.ToLower(text))
	for rest != "" {
		digits := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsDigit(r) })
		if digits == -1 {
			return 0, ErrNoUnit
		}
		number, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, err
		}
		rest = strings.TrimSpace(rest[digits:])
		end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) })
		if end == -1 {
			end = len(rest)
		}
		unit, known := units[rest[:end]]
		if !known {
			return 0, ErrUnknownUnit
		}
		total += time.Duration(number) * unit
		rest = strings.TrimSpace(rest[end:])
	}
	return total, nil
}
