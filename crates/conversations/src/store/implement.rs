//! The traits of the store, once for both databases.

/// Implements them with the functions of the modules `assistants`, `chats`, `read` and `write`, which every database has. The store opens its
/// database with `open`.
macro_rules! implement_traits {
    ($store:ident) => {
        impl ConversationStore for $store {
            fn add(
                &self,
                owner: &ResponseOwner,
                chat: Option<ChatId>,
                turn: &ChatTurn,
                now: SystemTime,
            ) -> DbResult<SavedTurn> {
                let room = Room { owner, limits: self.limits(owner), now };
                self.open()?.write(|transaction| write::add(transaction, &room, chat, turn))
            }

            fn replace(
                &self,
                owner: &ResponseOwner,
                saved: SavedTurn,
                turn: &ChatTurn,
                now: SystemTime,
            ) -> DbResult<SavedTurn> {
                let room = Room { owner, limits: self.limits(owner), now };
                self.open()?.write(|transaction| write::replace(transaction, &room, saved, turn))
            }

            fn forget(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool> {
                self.open()?.write(|transaction| write::forget(transaction, owner, chat))
            }

            fn list(&self, owner: &ResponseOwner, most: usize) -> DbResult<Vec<ChatSummary>> {
                self.open()?.read(|transaction| read::page(transaction, owner, None, ChatCursor::START, most))
            }

            fn latest(&self, owner: &ResponseOwner) -> DbResult<Option<ChatId>> {
                self.open()?.read(|transaction| read::latest(transaction, owner))
            }

            fn get(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<Conversation>> {
                self.open()?.read(|transaction| read::conversation(transaction, owner, chat))
            }
        }

        impl ChatStore for $store {
            fn page(&self, owner: &ResponseOwner, query: &ChatPageQuery) -> DbResult<ChatPage> {
                self.open()?.read(|transaction| chats::page(transaction, owner, query))
            }

            fn create(
                &self,
                owner: &ResponseOwner,
                chat: &NewChat,
                now: SystemTime,
            ) -> DbResult<Option<ChatSummary>> {
                let room = Room { owner, limits: self.limits(owner), now };
                self.open()?.write(|transaction| chats::create(transaction, &room, chat))
            }

            fn chat(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<SavedChat>> {
                self.open()?.read(|transaction| read::chat(transaction, owner, chat))
            }

            fn change(
                &self,
                owner: &ResponseOwner,
                chat: ChatId,
                change: &ChatChange,
            ) -> DbResult<ChatChanged> {
                let most = self.limits(owner).bytes;
                self.open()?.write(|transaction| chats::change(transaction, owner, chat, change, most))
            }

            fn delete(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool> {
                self.forget(owner, chat)
            }

            fn add_question(
                &self,
                owner: &ResponseOwner,
                chat: ChatId,
                question: &NewQuestion,
                now: SystemTime,
            ) -> DbResult<TurnSaved> {
                let room = Room { owner, limits: self.limits(owner), now };
                self.open()?.write(|transaction| chats::add_question(transaction, &room, chat, question))
            }

            fn save_answer(
                &self,
                owner: &ResponseOwner,
                turn: SavedTurn,
                answer: &SavedAnswer,
                now: SystemTime,
            ) -> DbResult<TurnSaved> {
                let room = Room { owner, limits: self.limits(owner), now };
                self.open()?.write(|transaction| chats::save_answer(transaction, &room, turn, answer))
            }

            fn assistants(&self, owner: &ResponseOwner) -> DbResult<Vec<SavedAssistant>> {
                self.open()?.read(|transaction| assistants::list(transaction, owner))
            }

            fn assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<Option<SavedAssistant>> {
                self.open()?.read(|transaction| assistants::find(transaction, owner, id))
            }

            fn create_assistant(
                &self,
                owner: &ResponseOwner,
                name: &str,
                settings: &SavedSettings,
            ) -> DbResult<Option<SavedAssistant>> {
                let most = self.limits(owner).assistants;
                self.open()?.write(|transaction| assistants::create(transaction, owner, name, settings, most))
            }

            fn change_assistant(
                &self,
                owner: &ResponseOwner,
                id: AssistantId,
                change: &AssistantChange,
            ) -> DbResult<Option<SavedAssistant>> {
                self.open()?.write(|transaction| assistants::change(transaction, owner, id, change))
            }

            fn delete_assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<bool> {
                self.open()?.write(|transaction| assistants::delete(transaction, owner, id))
            }
        }
    };
}
pub(super) use implement_traits;
