//! The component form and the two drivers that run components: real and simulated.
