/** Outgoing mailboxes as resources (protocol §1.3). */
export { mailboxPath, notificationPath } from "./outgoing-access.ts"
export { outgoingResource } from "./outgoing-resource.ts"
export { composeForm, statusElement } from "./outgoing-views.ts"
export { pausesElement, pausesPath } from "./pause-views.ts"
export { readPausesOf } from "./pauses.ts"
