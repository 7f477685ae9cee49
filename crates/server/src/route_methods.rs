//! The methods of a route, each with its handler. All handlers get one type here, so that what the router puts around a handler is
//! compiled once. Otherwise this crate takes 1.4 times as long to compile: for every handler, the compiler proves many times that its
//! future may move to another thread.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use futures::future::BoxFuture;

use crate::state::ServerState;

type State = Arc<ServerState>;

/// A handler of any form.
#[derive(Clone)]
struct AnyHandler(Arc<dyn Fn(Request, State) -> BoxFuture<'static, Response> + Send + Sync>);

impl AnyHandler {
    fn new<H, T>(handler: H) -> Self
    where
        H: Handler<T, State, Future = BoxFuture<'static, Response>>,
    {
        AnyHandler(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

/// Distinguishes the handler below from functions, which are handlers too.
struct Erased;

impl Handler<Erased, State> for AnyHandler {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: State) -> Self::Future {
        (self.0)(request, state)
    }
}

/// The methods of one route.
pub(crate) struct RouteMethods(MethodRouter<State>);

impl RouteMethods {
    pub(crate) fn into_router(self) -> MethodRouter<State> {
        self.0
    }
}

/// Functions that make a route with one method, and functions of a route that add one.
macro_rules! methods {
    (first: $($first:ident),*; further: $($further:ident),*) => {
        $(
            /// A route with this method.
            pub(crate) fn $first<H, T>(handler: H) -> RouteMethods
            where
                H: Handler<T, State, Future = BoxFuture<'static, Response>>,
            {
                RouteMethods(routing::$first(AnyHandler::new(handler)))
            }
        )*

        impl RouteMethods {
            $(
                /// The same with another method.
                pub(crate) fn $further<H, T>(self, handler: H) -> Self
                where
                    H: Handler<T, State, Future = BoxFuture<'static, Response>>,
                {
                    RouteMethods(self.0.$further(AnyHandler::new(handler)))
                }
            )*
        }
    };
}

methods!(first: get, post, put, patch, delete; further: post, put, patch, delete, head);
