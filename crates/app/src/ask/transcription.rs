//! The words of a recording, from the engine that has a model for speech.

use hob_core::{AskError, Caller, SpeechRecording};
use hob_engines::transcription::{is_speech_model, read_transcript, transcription_request};

use super::AskService;

impl AskService {
    /// The words of a recording.
    pub(super) async fn transcription(
        &self,
        recording: SpeechRecording,
        caller: &Caller,
    ) -> Result<String, AskError> {
        let model = match recording.model.clone() {
            Some(model) => model,
            None => self.speech_model(caller).await?.ok_or_else(|| no_model(&recording))?,
        };
        let answered = self.media(transcription_request(&recording, model), caller).await?;
        Ok(read_transcript(answered.answer.body, &answered.engine).await?)
    }

    /// The first model that transcribes, by its name.
    async fn speech_model(&self, caller: &Caller) -> Result<Option<String>, AskError> {
        let listed = self.listed_models(caller.rights()).await?;
        let mut names = listed.into_iter().map(|listed| listed.model.id);
        Ok(names.find(|name| is_speech_model(name)))
    }
}

fn no_model(recording: &SpeechRecording) -> AskError {
    let reason = "no engine has a model for speech, and [channel] transcription_model names none".to_owned();
    AskError::Attachment { param: recording.name.clone(), reason }
}
