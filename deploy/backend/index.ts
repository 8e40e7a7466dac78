/** The store that a node runs on, and what the operator is told when it cannot be used. */
export { backend, type BackendFailure, groupLimits, isClustered, natsOptions, nodeNameOf,
  NodeUnnamed, placeOf, type Ports } from "./backend.ts"
export { differing, missing } from "./engine-messages.ts"
export { failpoint } from "./failpoint.ts"
