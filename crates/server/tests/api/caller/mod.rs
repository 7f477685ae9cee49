//! What a stranger can do: on the network, through a forwarder, as a web page.

mod forwarded;
mod network;
mod unlisted_page;
