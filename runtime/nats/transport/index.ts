/** Messages and hints between nodes over NATS subjects. */
export { hmacAuthenticator } from "./envelope-authenticator.ts"
export { assertSubjectPermission } from "./permissions.ts"
export { natsPings } from "./pings.ts"
export { natsTransport } from "./transport.ts"
