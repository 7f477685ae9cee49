//! `hob model search`: the built-in list and the model hub.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::model_service;
use hob_config::Config;
use hob_models::pull::FoundRepository;
use hob_models::{CatalogueEntry, catalogue};
use serde_json::{Value, json};

use crate::args::NetworkAccess;
use crate::output::number::memory;
use crate::output::progress::Spinner;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::{self, OutputFormat};
use crate::settings;

const COLUMNS: [Column; 4] =
    [Column::Words("NAME"), Column::Numbers("SIZE"), Column::Numbers("DOWNLOADS"), Column::Words("LICENCE")];

pub struct SearchOptions {
    pub words: String,
    /// The most results of the hub.
    pub limit: usize,
    pub network: NetworkAccess,
    pub format: OutputFormat,
}

pub async fn run(config: &Config, options: SearchOptions) -> Result<ExitCode> {
    let SearchOptions { words, limit, network, format } = options;
    let built_in = catalogue().filter(|entry| entry.matches(&words)).map(SearchHit::BuiltIn);
    let mut hits: Vec<SearchHit> = built_in.collect();
    let found = match network {
        NetworkAccess::Offline => Ok(Vec::new()),
        NetworkAccess::Online => {
            let _waiting = Spinner::start("searching the model hub");
            model_service(config, &settings::home()?).search(&words, limit).await
        }
    };
    // What is known here is shown even if the hub fails.
    let failure = match found {
        Ok(found) => {
            hits.extend(found.into_iter().map(SearchHit::Hub));
            None
        }
        Err(error) => Some(error),
    };
    match format {
        OutputFormat::Json => output::json(&hits.iter().map(SearchHit::as_json).collect::<Vec<_>>())?,
        OutputFormat::Text if !hits.is_empty() => {
            table::print(&COLUMNS, &hits.iter().map(SearchHit::row).collect::<Vec<_>>())?;
        }
        OutputFormat::Text => {}
    }
    match failure {
        Some(error) => Err(error.into()),
        None if hits.is_empty() => {
            output::note(format_args!("No model matches '{words}'."));
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A model that was found.
enum SearchHit {
    BuiltIn(&'static CatalogueEntry),
    Hub(FoundRepository),
}

impl SearchHit {
    /// The name for a pull.
    fn name(&self) -> String {
        match self {
            SearchHit::BuiltIn(entry) => entry.short_name.to_owned(),
            SearchHit::Hub(found) => format!("hf:{}", found.repo),
        }
    }

    fn row(&self) -> Vec<String> {
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let (size, downloads, license) = match self {
            SearchHit::BuiltIn(entry) => {
                (Some(format!("~{}", memory(entry.total_size()))), None, Some(entry.license.to_owned()))
            }
            SearchHit::Hub(found) => {
                (None, found.downloads.map(|count| count.to_string()), found.license.as_deref().map(one_line))
            }
        };
        vec![self.name(), known(size), known(downloads), known(license)]
    }

    fn as_json(&self) -> Value {
        match self {
            SearchHit::BuiltIn(entry) => json!({
                "name": self.name(), "size": entry.total_size(), "downloads": null, "license": entry.license, "built_in": true,
            }),
            SearchHit::Hub(found) => json!({
                "name": self.name(), "size": null, "downloads": found.downloads, "license": found.license,
                "built_in": false,
            }),
        }
    }
}
