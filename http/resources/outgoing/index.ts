/** Outgoing mailboxes as resources (protocol §1.3). */
export { notificationPath } from "./outgoing-access.ts"
export { outgoingResource } from "./outgoing-resource.ts"
export { composeForm, statusElement } from "./outgoing-views.ts"
