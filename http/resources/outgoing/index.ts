/** Outgoing mailboxes as resources (protocol §1.3). */
export { outgoingResource } from "./outgoing-resource.ts"
export { composeForm } from "./outgoing-views.ts"
