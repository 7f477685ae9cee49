//! What one run works with: its agent, its tools, its engine with the meter on, and the events it is heard by.

use std::sync::Arc;

use hob_core::{Agent, AgentContext, Engine, GenerateRequest, GenerationStream, Listener, RunEvents, Tools};

use super::System;
use crate::agent_stream::{AgentStream, ear};
use crate::caller::{AgentWish, AskError, Caller};
use crate::lane::Wish;
use crate::metered::{Metered, Origin};
use crate::route::Route;
use crate::trace::TracedTools;

impl System {
    pub(super) fn agent_stream(
        &self,
        route: &Route,
        request: GenerateRequest,
        agent: Arc<dyn Agent>,
        caller: &Caller,
    ) -> Result<GenerationStream, AskError> {
        let (ear, pieces) = ear(&self.bus, &caller.run);
        let context = self.context(route, caller, agent.name(), Some(Arc::new(ear)))?;
        let run = Box::pin(async move { agent.run(&request, &context).await });
        Ok(GenerationStream { warnings: Vec::new(), deltas: Box::pin(AgentStream::new(run, pieces)) })
    }

    pub(super) fn context(
        &self,
        route: &Route,
        caller: &Caller,
        agent: &str,
        listener: Option<Arc<dyn Listener>>,
    ) -> Result<AgentContext, AskError> {
        let events = self.events(caller);
        Ok(AgentContext {
            engine: route.metered(self.origin(caller, Some(agent))),
            tools: self.tools_for(caller, &events)?,
            events,
            max_turns: self.max_turns,
            listener,
        })
    }

    fn tools_for(&self, caller: &Caller, events: &RunEvents) -> Result<Arc<dyn Tools>, AskError> {
        let tools = Arc::new(self.tools.load().for_run(caller.permit.clone(), events.clone())?);
        Ok(match self.spans.are_heard() {
            true => Arc::new(TracedTools { tools, spans: self.spans.clone(), parent: caller.trace_parent }),
            false => tools,
        })
    }

    /// An engine, with its work put down to this caller.
    pub(super) fn metered_on(&self, engine: &Arc<dyn Engine>, caller: &Caller) -> Metered {
        Metered::new(Arc::clone(engine), self.origin(caller, None))
    }

    pub(super) fn origin(&self, caller: &Caller, agent: Option<&str>) -> Origin {
        Origin {
            run: Arc::clone(&caller.run),
            source: caller.source,
            agent: agent.map(str::to_owned),
            events: self.events(caller),
            log: Arc::clone(&self.log),
            spans: self.spans.clone(),
            meters: self.meters.clone(),
            trace_parent: caller.trace_parent,
        }
    }

    pub(super) fn events(&self, caller: &Caller) -> RunEvents {
        RunEvents::new(self.bus.clone(), Arc::clone(&caller.run))
    }

    pub(super) fn wish(&self, wish: &AgentWish) -> Result<Wish<Arc<dyn Agent>>, AskError> {
        Ok(match wish {
            AgentWish::Configured => Wish::Configured(self.agent.clone()),
            AgentWish::None => Wish::None,
            AgentWish::Named(name) => {
                let agent =
                    hob_agent::agent(name).ok_or_else(|| AskError::UnknownAgent { name: name.clone() })?;
                Wish::Named(agent)
            }
        })
    }
}
