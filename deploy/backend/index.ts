/** The store that a node runs on, and the messages for when it cannot be used. */
export { backend, type BackendFailure, groupLimits, isClustered, natsOptions, nodeNameOf,
  type Ports } from "./backend.ts"
export { failpoint } from "./failpoint.ts"
export { backendFailed, isBackendFailure } from "./failure-messages.ts"
