//! Reads calendars from a CalDAV server (RFC 4791): finds them below the configured address, and asks each for the events of a
//! range.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reqwest::{Method, StatusCode};
use url::Url;

use crate::calendar::EventRange;
use crate::error::SourceError;
use crate::fetch::{FetchedSource, SourceFetcher, SourceRequest, server_name};
use crate::types::SourceLogin;
use crate::xml::{XmlElement, XmlSpace, parse};

const ACCEPT: &str = "application/xml, text/xml";
/// The answers of a server, together.
const MAX_BYTES: usize = 10 << 20;
/// Calendars of a user.
const MAX_CALENDARS: usize = 50;

const FIND: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <d:propfind xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:prop>\
    <d:resourcetype/><d:current-user-principal/><c:calendar-home-set/>\
    <c:supported-calendar-component-set/></d:prop></d:propfind>";

/// A server and a user.
pub(crate) struct CalDavSource<'a> {
    pub fetcher: &'a SourceFetcher,
    pub login: &'a SourceLogin,
}

/// What an address on the server is.
struct Resource {
    url: Url,
    is_calendar: bool,
    principal: Option<Url>,
    home: Option<Url>,
}

impl CalDavSource<'_> {
    /// The calendar files of the events in a range, of all calendars at or below the address.
    pub async fn files(&self, address: &Url, range: EventRange) -> Result<Vec<String>, SourceError> {
        let mut left = MAX_BYTES;
        let mut files = Vec::new();
        for calendar in self.calendars(address).await? {
            let body = query(range);
            let answer = self.send("REPORT", &calendar, "1", body, left).await?;
            left -= answer.body.len();
            files.extend(calendar_data(&multistatus(&answer)?));
        }
        Ok(files)
    }

    /// The address itself if it is a calendar, else the calendars of its user.
    async fn calendars(&self, address: &Url) -> Result<Vec<Url>, SourceError> {
        let found = match self.find(address, "0").await {
            // Many servers have nothing at their root, and name the real address elsewhere.
            Err(SourceError::Status(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
                if address.path() == "/" =>
            {
                let well_known = join(address, "/.well-known/caldav")?;
                self.find(&well_known, "0").await?
            }
            found => found?,
        };
        let Some(first) = found.into_iter().next() else { return Err(SourceError::NoCalendar) };
        if first.is_calendar {
            return Ok(vec![first.url]);
        }
        let home = match (first.home, first.principal) {
            (Some(home), _) => home,
            (None, Some(principal)) => {
                let of_user = self.find(&principal, "0").await?;
                // Without a home, calendars may be below the address itself.
                of_user.into_iter().find_map(|resource| resource.home).unwrap_or(first.url)
            }
            (None, None) => first.url,
        };
        let below = self.find(&home, "1").await?;
        let calendars = below.into_iter().filter(|resource| resource.is_calendar);
        let calendars: Vec<Url> = calendars.map(|resource| resource.url).take(MAX_CALENDARS).collect();
        if calendars.is_empty() { Err(SourceError::NoCalendar) } else { Ok(calendars) }
    }

    async fn find(&self, url: &Url, depth: &'static str) -> Result<Vec<Resource>, SourceError> {
        let answer = self.send("PROPFIND", url, depth, FIND.to_owned(), MAX_BYTES).await?;
        let root = multistatus(&answer)?;
        root.all(XmlSpace::Dav, "response").map(|response| resource(response, &answer.url)).collect()
    }

    async fn send(
        &self,
        method: &str,
        url: &Url,
        depth: &'static str,
        body: String,
        max_bytes: usize,
    ) -> Result<FetchedSource, SourceError> {
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|error| SourceError::BadUrl(error.to_string()))?;
        let request = SourceRequest {
            method,
            url: url.clone(),
            accept: ACCEPT,
            max_bytes,
            login: Some(self.login),
            depth: Some(depth),
            body: Some(body),
        };
        self.fetcher.fetch(request).await.map_err(|error| match error {
            SourceError::TooLarge(_) => SourceError::TooLarge(MAX_BYTES),
            error => error,
        })
    }
}

/// The request for the events of a range, with all that repeated ones need.
fn query(range: EventRange) -> String {
    let moment = |moment: Timestamp| TimeZone::UTC.to_datetime(moment).strftime("%Y%m%dT%H%M%SZ").to_string();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <c:calendar-query xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\">\
         <d:prop><c:calendar-data/></d:prop><c:filter><c:comp-filter name=\"VCALENDAR\">\
         <c:comp-filter name=\"VEVENT\"><c:time-range start=\"{}\" end=\"{}\"/></c:comp-filter>\
         </c:comp-filter></c:filter></c:calendar-query>",
        moment(range.from),
        moment(range.to)
    )
}

fn multistatus(answer: &FetchedSource) -> Result<XmlElement, SourceError> {
    let text = hob_text::charset::decode(&answer.body, answer.content_type.as_deref());
    let root = parse(&text)?;
    match (root.space, root.name.as_str()) {
        (XmlSpace::Dav, "multistatus") => Ok(root),
        _ => Err(SourceError::NoCalendar),
    }
}

/// The properties that the server has.
fn properties(response: &XmlElement) -> impl Iterator<Item = &XmlElement> {
    let found = response.all(XmlSpace::Dav, "propstat").filter(|part| {
        let status = part.first(XmlSpace::Dav, "status").map(XmlElement::text);
        // "HTTP/1.1 200 OK"
        status.is_none_or(|status| status.split_whitespace().nth(1) == Some("200"))
    });
    found.filter_map(|part| part.first(XmlSpace::Dav, "prop"))
}

fn resource(response: &XmlElement, base: &Url) -> Result<Resource, SourceError> {
    let href = response.first(XmlSpace::Dav, "href").map(XmlElement::text).unwrap_or_default();
    let mut resource =
        Resource { url: join(base, href.trim())?, is_calendar: false, principal: None, home: None };
    for property in properties(response) {
        let link = |space, name| {
            let href = property.first(space, name)?.first(XmlSpace::Dav, "href")?.text();
            Some(href.trim().to_owned()).filter(|href| !href.is_empty())
        };
        if let Some(kind) = property.first(XmlSpace::Dav, "resourcetype") {
            resource.is_calendar = kind.first(XmlSpace::CalDav, "calendar").is_some();
        }
        if let Some(parts) = property.first(XmlSpace::CalDav, "supported-calendar-component-set") {
            let mut parts = parts.all(XmlSpace::CalDav, "comp");
            resource.is_calendar &= parts.any(|part| part.attribute("name") == Some("VEVENT"));
        }
        if let Some(principal) = link(XmlSpace::Dav, "current-user-principal") {
            resource.principal = Some(join(base, &principal)?);
        }
        if let Some(home) = link(XmlSpace::CalDav, "calendar-home-set") {
            resource.home = Some(join(base, &home)?);
        }
    }
    Ok(resource)
}

fn calendar_data(root: &XmlElement) -> Vec<String> {
    let responses = root.all(XmlSpace::Dav, "response");
    let data =
        responses.flat_map(properties).filter_map(|part| part.first(XmlSpace::CalDav, "calendar-data"));
    data.map(XmlElement::text).collect()
}

/// An address that the server names. It must not be on another server, which would get the password.
fn join(base: &Url, href: &str) -> Result<Url, SourceError> {
    let url = base.join(href).map_err(|error| SourceError::BadUrl(error.to_string()))?;
    match url.origin() == base.origin() {
        true => Ok(url),
        false => Err(SourceError::LeavesServer(server_name(&url))),
    }
}
