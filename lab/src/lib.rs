//! The lab: networks of nodes in namespaces or in the simulator, scenarios and expectations.
