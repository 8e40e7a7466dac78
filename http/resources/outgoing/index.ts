/** Outgoing mailboxes as resources (protocol §1.3). */
export { outgoingOperations } from "./outgoing-operations.ts"
export { outgoingRoutes } from "./outgoing-routes.ts"
export { composeForm } from "./outgoing-views.ts"
