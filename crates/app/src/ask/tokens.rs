//! Text as the tokens of a model, and back. Each counts as a request of its key, like a question.

use std::borrow::Cow;
use std::sync::Arc;

use hob_core::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};
use hob_core::{AskError, Caller, DetokenizeRequest, Engine, TokenizeInput, TokenizeRequest, Tokenized};

use super::AskService;
use crate::ask::key_admission::Admitted;

impl AskService {
    /// A text as the tokens of a model.
    pub async fn tokenize(
        &self,
        mut request: TokenizeRequest,
        caller: &Caller,
    ) -> Result<Tokenized, AskError> {
        let Admitted { caller, running: _running } = self.admitted(Cow::Borrowed(caller)).await?;
        if let TokenizeInput::Conversation(conversation) = &mut request.input {
            // The engine gets what it would get for an answer: no address of a picture or file.
            self.admit(conversation, &caller).await?;
        }
        let engine = self.tokenizer(&mut request.model, &caller).await?;
        if let TokenizeInput::Conversation(conversation) = &mut request.input {
            conversation.model.clone_from(&request.model);
            self.documents.place_all(conversation, engine.key()).await?;
        }
        Ok(engine.tokenize(&request).await?)
    }

    /// Tokens of a model as text.
    pub async fn detokenize(
        &self,
        mut request: DetokenizeRequest,
        caller: &Caller,
    ) -> Result<String, AskError> {
        let Admitted { caller, running: _running } = self.admitted(Cow::Borrowed(caller)).await?;
        let engine = self.tokenizer(&mut request.model, &caller).await?;
        Ok(engine.detokenize(&request).await?)
    }

    /// The engine whose tokenizer is used. `default`, `auto` and the agent mean the steady default model.
    async fn tokenizer(&self, model: &mut String, caller: &Caller) -> Result<Arc<dyn Engine>, AskError> {
        let alias = self.aliases.apply(model);
        if [DEFAULT_MODEL, AUTO, AGENT_MODEL].contains(&model.as_str())
            && let Some(steady) = self.steady_model().await?
        {
            *model = steady;
        }
        self.named_engine(model, alias.as_ref(), &caller.rights()).await
    }
}
