//! Suggests a route for a path that does not exist. Knows the table of routes and the usual mistakes.

use strsim::damerau_levenshtein;

/// Longer paths are not typing mistakes, and comparing them takes time.
const MAX_PATH_LENGTH: usize = 128;

/// Prefixes that are added by mistake or missing.
const PREFIXES: [&str; 2] = ["v1", "api"];

const CHAT: &str = "/v1/chat/completions";

/// Where clients of Ollama ask.
const OLLAMA: &str = "/api/";

/// Short forms of names.
const SHORT_NAMES: [(&str, &str); 1] = [("chat", CHAT)];

/// The routes, and the names to compare with.
pub(crate) struct RouteSuggestions {
    routes: matchit::Router<()>,
    /// Names of routes without their prefix, and the routes.
    names: Vec<(String, &'static str)>,
}

impl RouteSuggestions {
    /// Takes the patterns of all routes.
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let mut routes = matchit::Router::new();
        let mut names: Vec<(String, &'static str)> =
            SHORT_NAMES.iter().map(|(name, route)| ((*name).to_owned(), *route)).collect();
        for pattern in patterns {
            // The server's router accepted the same pattern.
            let _ = routes.insert(pattern, ());
            let name = bare(pattern);
            if !name.is_empty() && !name.contains('{') {
                names.push((name, pattern));
            }
        }
        RouteSuggestions { routes, names }
    }

    /// The route that the caller probably meant.
    pub(crate) fn nearest(&self, path: &str) -> Option<String> {
        if path.len() > MAX_PATH_LENGTH {
            return None;
        }
        let name = bare(path);
        if name.is_empty() {
            return None;
        }
        let elsewhere = [format!("/v1/{name}"), format!("/{name}")];
        let found = elsewhere.into_iter().find(|path| self.routes.at(path).is_ok());
        let api = if path.starts_with(OLLAMA) { OLLAMA } else { "" };
        found.or_else(|| self.misspelt(&name.to_lowercase(), api).map(str::to_owned))
    }

    /// The route with the most similar name. Of two, the one below `api`, and else the one that is listed first.
    fn misspelt(&self, name: &str, api: &str) -> Option<&'static str> {
        let slips = name.chars().count() / 4;
        let distances = self.names.iter().map(|(known, route)| (damerau_levenshtein(name, known), *route));
        let near = distances.filter(|(distance, _)| *distance <= slips);
        near.min_by_key(|(distance, route)| (*distance, !route.starts_with(api))).map(|(_, route)| route)
    }
}

/// The path without prefixes and without repeated slashes.
fn bare(path: &str) -> String {
    let words = path.split('/').filter(|word| !word.is_empty());
    words.skip_while(|word| PREFIXES.contains(&word.to_lowercase().as_str())).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestions() -> RouteSuggestions {
        RouteSuggestions::new([
            CHAT,
            "/v1/completions",
            "/v1/responses",
            "/v1/messages",
            "/api/chat",
            "/api/tags",
            "/v1/models",
            "/v1/models/{*id}",
            "/v1/channels",
            "/v1/tasks",
            "/v1/tasks/{id}/pause",
            "/v1/embeddings",
            "/",
            "/dashboard",
            "/health",
        ])
    }

    #[test]
    fn a_wrong_path_gets_the_route_that_was_meant() {
        for (path, meant) in [
            ("/chat/completions", CHAT),
            ("/v1/chat/completion", CHAT),
            ("/v1/chat/completions/", CHAT),
            ("//v1//chat/completions", CHAT),
            ("/V1/Chat/Completions", CHAT),
            ("/v1/v1/chat/completions", CHAT),
            ("/api/v1/chat/completions", CHAT),
            ("/v1/chatcompletions", CHAT),
            ("/v1/chat", CHAT),
            ("/v1/completion", "/v1/completions"),
            ("/v1/response", "/v1/responses"),
            ("/responses", "/v1/responses"),
            ("/message", "/v1/messages"),
            ("/v1/messages/", "/v1/messages"),
            ("/api/chats", "/api/chat"),
            ("/v1/tags", "/api/tags"),
            ("/models", "/v1/models"),
            ("/v1/model", "/v1/models"),
            ("/v1/models/", "/v1/models"),
            ("/models/Qwen/Qwen3-8B", "/v1/models/Qwen/Qwen3-8B"),
            ("/tasks/7/pause", "/v1/tasks/7/pause"),
            ("/v1/embedings", "/v1/embeddings"),
            ("/v1/health", "/health"),
            ("/healthz", "/health"),
            ("/v1/dashbord", "/dashboard"),
        ] {
            assert_eq!(suggestions().nearest(path).as_deref(), Some(meant), "{path}");
        }
    }

    #[test]
    fn a_name_that_two_apis_have_means_the_one_that_was_asked() {
        let routes = RouteSuggestions::new([CHAT, "/v1/embeddings", "/api/chat", "/api/embeddings"]);
        let nearest = |path: &str| routes.nearest(path);
        assert_eq!(nearest("/api/chatt").as_deref(), Some("/api/chat"));
        assert_eq!(nearest("/v1/chat").as_deref(), Some(CHAT));
        assert_eq!(nearest("/chat").as_deref(), Some(CHAT));
        assert_eq!(nearest("/api/embedding").as_deref(), Some("/api/embeddings"));
        assert_eq!(nearest("/v1/embedding").as_deref(), Some("/v1/embeddings"));
    }

    #[test]
    fn what_resembles_nothing_gets_no_advice() {
        let long = "/v1/chat/completions".repeat(1000);
        for path in
            ["/", "/v1", "/v1/", "/api/v1", "/v2/nothing", "/favicon.ico", "/index.html", "/docs", &long]
        {
            assert_eq!(suggestions().nearest(path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_may_be_asked_for(path in "/[^ ]{0,200}") {
            let _ = suggestions().nearest(&path);
        }
    }
}
