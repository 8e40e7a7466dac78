/** Push registrations (protocol §1.4). */
export { registration } from "./actor.ts"
export { RegistrationMessage, type RegistrationReply, RegistrationStatus,
  type RegistrationView } from "./protocol.ts"
