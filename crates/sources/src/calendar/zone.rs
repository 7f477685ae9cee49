//! The time zones that a calendar file names.

use std::collections::{BTreeSet, HashMap};

use jiff::tz::{Offset, TimeZone};

/// Definitions of zones that are read, and names that are looked up.
const MAX_ZONES: usize = 500;
/// Characters of a name that a note shows.
const SHOWN: usize = 60;

/// Names that Windows and Outlook give to zones.
const WINDOWS: [(&str, &str); 46] = [
    ("AUS Eastern Standard Time", "Australia/Sydney"),
    ("Alaskan Standard Time", "America/Anchorage"),
    ("Arab Standard Time", "Asia/Riyadh"),
    ("Arabian Standard Time", "Asia/Dubai"),
    ("Argentina Standard Time", "America/Argentina/Buenos_Aires"),
    ("Atlantic Standard Time", "America/Halifax"),
    ("Cen. Australia Standard Time", "Australia/Adelaide"),
    ("Central America Standard Time", "America/Guatemala"),
    ("Central Asia Standard Time", "Asia/Almaty"),
    ("Central Europe Standard Time", "Europe/Budapest"),
    ("Central European Standard Time", "Europe/Warsaw"),
    ("Central Standard Time", "America/Chicago"),
    ("Central Standard Time (Mexico)", "America/Mexico_City"),
    ("China Standard Time", "Asia/Shanghai"),
    ("E. Africa Standard Time", "Africa/Nairobi"),
    ("E. Australia Standard Time", "Australia/Brisbane"),
    ("E. Europe Standard Time", "Europe/Chisinau"),
    ("E. South America Standard Time", "America/Sao_Paulo"),
    ("Eastern Standard Time", "America/New_York"),
    ("Egypt Standard Time", "Africa/Cairo"),
    ("FLE Standard Time", "Europe/Kiev"),
    ("GMT Standard Time", "Europe/London"),
    ("GTB Standard Time", "Europe/Bucharest"),
    ("Greenwich Standard Time", "Atlantic/Reykjavik"),
    ("Hawaiian Standard Time", "Pacific/Honolulu"),
    ("India Standard Time", "Asia/Kolkata"),
    ("Iran Standard Time", "Asia/Tehran"),
    ("Israel Standard Time", "Asia/Jerusalem"),
    ("Korea Standard Time", "Asia/Seoul"),
    ("Mountain Standard Time", "America/Denver"),
    ("New Zealand Standard Time", "Pacific/Auckland"),
    ("Newfoundland Standard Time", "America/St_Johns"),
    ("Pacific SA Standard Time", "America/Santiago"),
    ("Pacific Standard Time", "America/Los_Angeles"),
    ("Pakistan Standard Time", "Asia/Karachi"),
    ("Romance Standard Time", "Europe/Paris"),
    ("Russian Standard Time", "Europe/Moscow"),
    ("SA Pacific Standard Time", "America/Bogota"),
    ("SE Asia Standard Time", "Asia/Bangkok"),
    ("Singapore Standard Time", "Asia/Singapore"),
    ("South Africa Standard Time", "Africa/Johannesburg"),
    ("Tokyo Standard Time", "Asia/Tokyo"),
    ("Turkey Standard Time", "Europe/Istanbul"),
    ("US Mountain Standard Time", "America/Phoenix"),
    ("W. Australia Standard Time", "Australia/Perth"),
    ("W. Europe Standard Time", "Europe/Berlin"),
];

/// A zone that a file defines (`VTIMEZONE`).
#[derive(Debug, Default)]
pub(super) struct ZoneDefinition {
    pub name: String,
    /// The name of the zone in the IANA database, if the program that wrote the file added it.
    pub location: Option<String>,
    /// The offset in winter.
    pub standard: Option<Offset>,
}

/// The zones of one file, and what should be said about them.
pub(super) struct Zones {
    definitions: HashMap<String, ZoneDefinition>,
    /// The zones that were looked up so far.
    known: HashMap<String, TimeZone>,
    /// For times without a zone.
    owner: TimeZone,
    pub notes: BTreeSet<String>,
}

impl Zones {
    pub fn new(owner: TimeZone) -> Self {
        Zones { definitions: HashMap::new(), known: HashMap::new(), owner, notes: BTreeSet::new() }
    }

    /// Adds a definition. The first of a name counts.
    pub fn define(&mut self, definition: ZoneDefinition) {
        if self.definitions.len() < MAX_ZONES {
            self.definitions.entry(definition.name.clone()).or_insert(definition);
        }
    }

    /// The zone of a property. A name that nothing explains counts as the owner's zone.
    pub fn find(&mut self, name: Option<&str>) -> TimeZone {
        let Some(name) = name else { return self.owner.clone() };
        if let Some(zone) = self.known.get(name) {
            return zone.clone();
        }
        // A hostile file could have a name for each date. A name that is not known takes longest.
        if self.known.len() >= MAX_ZONES {
            self.notes.insert(format!(
                "The calendar names more than {MAX_ZONES} time zones. The times of further ones count as times of your zone."
            ));
            return self.owner.clone();
        }
        let zone = self.look_up(name);
        self.known.insert(name.to_owned(), zone.clone());
        zone
    }

    fn look_up(&mut self, name: &str) -> TimeZone {
        let definition = self.definitions.get(name);
        let location = definition.and_then(|definition| definition.location.as_deref());
        if let Some(zone) = by_name(name).or_else(|| by_name(location?)) {
            return zone;
        }
        let shown: String = name.chars().filter(|character| !character.is_control()).take(SHOWN).collect();
        match definition.and_then(|definition| definition.standard) {
            Some(offset) => {
                self.notes.insert(format!(
                    "The time zone '{shown}' is not known. Its times count as UTC{offset}, without summer time."
                ));
                TimeZone::fixed(offset)
            }
            None => {
                self.notes.insert(format!(
                    "The time zone '{shown}' is not known. Its times count as times of your zone."
                ));
                self.owner.clone()
            }
        }
    }
}

/// A zone by its name in the IANA database, by a longer name that ends with it, or by its name in Windows.
fn by_name(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    let is_utc = ["UTC", "GMT", "Z", "Etc/UTC"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
    if is_utc {
        return Some(TimeZone::UTC);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    if let Some((_, zone)) = WINDOWS.iter().find(|(windows, _)| windows.eq_ignore_ascii_case(name)) {
        return TimeZone::get(zone).ok();
    }
    // Some programs write a prefix: /example.org/20260101_1/Europe/Berlin.
    let pieces: Vec<&str> = name.split('/').filter(|piece| !piece.is_empty()).collect();
    [3, 2].into_iter().find_map(|count| {
        let start = pieces.len().checked_sub(count)?;
        TimeZone::get(&pieces[start..].join("/")).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(zones: &mut Zones, tzid: &str) -> String {
        zones.find(Some(tzid)).iana_name().unwrap_or("an offset").to_owned()
    }

    #[test]
    fn names_of_the_database_of_windows_and_of_programs_are_known() {
        let mut zones = Zones::new(TimeZone::get("Asia/Tokyo").unwrap());
        for (tzid, expected) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("W. Europe Standard Time", "Europe/Berlin"),
            ("/freeassociation.sourceforge.net/Europe/Berlin", "Europe/Berlin"),
            ("/x/20050126_1/America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ] {
            assert_eq!(name(&mut zones, tzid), expected, "{tzid}");
        }
        assert_eq!(zones.find(Some("gmt")), TimeZone::UTC);
        assert_eq!(zones.find(None).iana_name(), Some("Asia/Tokyo"));
        assert!(zones.notes.is_empty());
    }

    #[test]
    fn every_zone_of_windows_exists() {
        for (windows, zone) in WINDOWS {
            assert!(TimeZone::get(zone).is_ok(), "{windows}: {zone}");
        }
    }

    #[test]
    fn a_limited_number_of_names_is_looked_up() {
        let mut zones = Zones::new(TimeZone::get("Asia/Tokyo").unwrap());
        for number in 0..2 * MAX_ZONES {
            assert_eq!(name(&mut zones, &format!("Nowhere/{number}")), "Asia/Tokyo");
        }
        assert_eq!(zones.notes.len(), MAX_ZONES + 1);
        assert_eq!(name(&mut zones, "Europe/Berlin"), "Asia/Tokyo", "it comes too late");
    }

    #[test]
    fn a_zone_of_its_own_name_is_explained_by_its_definition_or_by_a_note() {
        let mut zones = Zones::new(TimeZone::UTC);
        zones.define(ZoneDefinition {
            name: "Office".to_owned(),
            location: Some("Europe/Paris".to_owned()),
            standard: None,
        });
        zones.define(ZoneDefinition {
            name: "Ship".to_owned(),
            location: Some("Nowhere/At All".to_owned()),
            standard: Offset::from_hours(5).ok(),
        });
        assert_eq!(name(&mut zones, "Office"), "Europe/Paris");
        assert!(zones.notes.is_empty());
        assert_eq!(zones.find(Some("Ship")), TimeZone::fixed(Offset::constant(5)));
        assert_eq!(zones.find(Some("../../etc/passwd")), TimeZone::UTC);
        let notes: Vec<&str> = zones.notes.iter().map(String::as_str).collect();
        assert_eq!(
            notes,
            [
                "The time zone '../../etc/passwd' is not known. Its times count as times of your zone.",
                "The time zone 'Ship' is not known. Its times count as UTC+05, without summer time."
            ]
        );
    }
}
