/** Messages and hints between nodes over NATS subjects. */
export { assertSubjectPermission } from "./permissions.ts"
export { natsTransport } from "./transport.ts"
