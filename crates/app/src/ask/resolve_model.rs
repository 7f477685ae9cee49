//! Resolves the requested model and the engine that has it.

use std::sync::Arc;

use hob_core::engine::CLOUD;
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{
    AnswerDefaults, AskError, Caller, CallerRights, CallerRole, Engine, EngineError, GenerateRequest,
    ModelReason,
};
use hob_engines::{RequestTarget, explain_missing};
use hob_models::catalogue;
use hob_routing::RoutedModel;

use super::AskService;
use crate::ask::answer_route::AnswerRoute;
use hob_engines::fallback::{Fallback, is_unresolved};
use hob_engines::hints::place_hints;
use hob_engines::pool::{EngineMatch, NamedBy};

impl AskService {
    /// Replaces `default` and `auto` by the name of a model, and returns the reason if Hob chose it.
    async fn resolve_model(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<Option<RoutedModel>, AskError> {
        if request.model == DEFAULT_MODEL
            && let Some(model) = self.default_model().await?
        {
            request.model = model;
        }
        if request.model != AUTO {
            return Ok(None);
        }
        let mut models = self.pool.recent().await?;
        let rights = caller.rights();
        models
            .retain(|listed| rights.may_use_engine(&listed.engine) && rights.may_be_given(&listed.model.id));
        // A model with this name has priority.
        if models.iter().any(|listed| listed.model.id == AUTO) {
            return Ok(None);
        }
        // Without the cloud there may be no candidates; the error then says so.
        if models.is_empty() {
            rights.check_engine(self.engine().key(), AUTO)?;
        }
        let routed = self.router.route(request, caller, &models, self.engine().key()).await?;
        request.model.clone_from(&routed.model);
        Ok(Some(routed))
    }

    /// The engine that answers, with the defaults. If Hob chose the model and it is not available, this is the fallback.
    pub(super) async fn route(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<AnswerRoute, AskError> {
        self.route_with(self.fallback.as_ref(), request, caller).await
    }

    /// The same with this fallback.
    pub(super) async fn route_with(
        &self,
        fallback: Option<&Arc<Fallback>>,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<AnswerRoute, AskError> {
        // For a request without a limit, the defaults have none either.
        let max_tokens = request.defaults.max_tokens.and(self.defaults.max_tokens);
        request.defaults = AnswerDefaults { max_tokens, ..self.defaults };
        let alias = self.aliases.apply(&mut request.model);
        let fallback = fallback.filter(|_| is_ours_to_choose(&request.model));
        let route = match (self.find(request, caller).await, fallback) {
            (Ok(route), None) => route,
            (Ok(route), Some(fallback)) => {
                let target = route.target.with_fallback(fallback, &self.pool, caller.rights());
                AnswerRoute { target, ..route }
            }
            (Err(AskError::Engine(error)), Some(fallback)) if is_unresolved(&error) => {
                let Some(model) = fallback.find(&self.pool, &request.model, &error, &caller.rights()).await
                else {
                    return Err(error.into());
                };
                request.model.clone_from(&model.model);
                AnswerRoute { target: RequestTarget::to_fallback(model), reporter: None }
            }
            (Err(error), _) => return Err(missing_model(error, alias.as_ref())),
        };
        let ignored = place_hints(request, route.engine());
        // Another engine may have been selected since.
        let cloud_reason = self.cloud_reason.as_ref().filter(|_| self.engine().key() == CLOUD);
        let target = route.target.with_cloud_reason(cloud_reason).after_alias(alias).ignoring(ignored);
        Ok(AnswerRoute { target, ..route })
    }

    async fn find(&self, request: &mut GenerateRequest, caller: &Caller) -> Result<AnswerRoute, AskError> {
        let rights = caller.rights();
        let named_by = if is_ours_to_choose(&request.model) { NamedBy::Hob } else { NamedBy::Caller };
        // A key that names `auto` or `default` may use what that stands for; `auto` itself must be named.
        let is_named = rights.may_use_model(&request.model);
        if request.model == AUTO {
            rights.check_model(AUTO)?;
        }
        let Some(RoutedModel { engine, reason, reporter, .. }) = self.resolve_model(request, caller).await?
        else {
            let EngineMatch { engine, instead_of } =
                self.find_engine(&request.model, named_by, &rights).await?;
            rights.check_engine(engine.key(), &request.model)?;
            if !is_named {
                rights.check_model(&request.model)?;
            }
            let target = RequestTarget::to(engine, None);
            let target = match instead_of {
                Some(error) => target.with_cloud_fallback(&error),
                None => target,
            };
            return Ok(AnswerRoute { target, reporter: None });
        };
        // The engine of the chosen model, even if other engines have a model with that name.
        let engine = match self.pool.with_key(&engine) {
            Some(engine) => Arc::clone(engine),
            None => self.find_engine(&request.model, named_by, &rights).await?.engine,
        };
        rights.check_engine(engine.key(), &request.model)?;
        Ok(AnswerRoute { target: RequestTarget::to(engine, Some(reason)), reporter: Some(reporter) })
    }

    /// The engine of a model that the caller named, if the caller may use both. `alias` is why the model has another name than the
    /// caller's.
    pub(super) async fn named_engine(
        &self,
        model: &str,
        alias: Option<&ModelReason>,
        rights: &CallerRights,
    ) -> Result<Arc<dyn Engine>, AskError> {
        let found = self.find_engine(model, NamedBy::Caller, rights).await;
        let engine = found.map_err(|error| missing_model(error.into(), alias))?.engine;
        rights.check(engine.key(), model)?;
        Ok(engine)
    }

    /// The engine that has a model. The error names only models that the caller may use.
    async fn find_engine(
        &self,
        model: &str,
        named_by: NamedBy,
        rights: &CallerRights,
    ) -> Result<EngineMatch, EngineError> {
        let may_use_all = rights.key.is_none() && rights.role == CallerRole::Owner;
        match self.pool.find(model, named_by).await {
            Err(EngineError::ModelNotFound { engine, model, .. }) if !may_use_all => {
                let listed = self.listed_models(rights.clone()).await.unwrap_or_default();
                let available = listed.into_iter().map(|listed| listed.model.id).collect();
                Err(EngineError::ModelNotFound { engine, model, available })
            }
            found => found,
        }
    }
}

/// The error of a request whose model no engine has.
fn missing_model(error: AskError, alias: Option<&ModelReason>) -> AskError {
    explain_missing(error, alias, |model| catalogue::find(model).is_some())
}

/// Whether this name leaves the choice of the model to Hob.
fn is_ours_to_choose(model: &str) -> bool {
    model == DEFAULT_MODEL || model == AUTO
}
