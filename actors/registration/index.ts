/** Push registrations (protocol §1.4). */
export { registration, type RegistrationDependencies } from "./actor.ts"
export { type AttemptFollowUp, decodeAttempt, type RegistrationAttempt } from "./attempts.ts"
export { RegistrationMessage, type RegistrationReply, RegistrationStatus, type RegistrationView,
  TopicFormat } from "./protocol.ts"
export type { TopicPush } from "./push.ts"
export { readSecretsFormat, replayEndsFormat, testEventsFormat, type TestEventStatus,
  tooManyReplays } from "./test-event.ts"
export { Vapid } from "./web-push.ts"
