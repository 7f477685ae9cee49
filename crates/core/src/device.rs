//! What an engine in this process computes with. Plain data.

/// The part of a model on one graphics card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceShare {
    /// The name of the device, as in `ComputeDevice`.
    pub device: String,
    pub layers: u32,
    /// About the bytes of weights and conversations.
    pub bytes: u64,
}

/// A graphics card that an engine in this process computes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeDevice {
    /// Its name for the engine, such as `CUDA0`.
    pub name: String,
    /// The product, such as `NVIDIA H200`.
    pub description: String,
    /// The interface, such as `CUDA`.
    pub backend: String,
    pub memory_total: u64,
    pub memory_free: u64,
}

/// What an engine in this process computes with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeUnits {
    /// The instructions of the processor that are used, such as `AVX2`.
    pub processor: Vec<String>,
    pub cards: Vec<ComputeDevice>,
    /// Why something that is there cannot be used.
    pub problems: Vec<String>,
}

/// Where the layers of a model would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePlan {
    /// All layers, with the output as one.
    pub layers: u32,
    /// The part on each graphics card; the rest is for the processor.
    pub shares: Vec<DeviceShare>,
}
