/** Outgoing mailboxes as resources (protocol §1.3). */
export { outgoingOperations } from "./outgoing-operations.ts"
export { composeForm } from "./outgoing-pages.ts"
export { outgoingRoutes } from "./outgoing-routes.ts"
