/** The bridge, its sessions, and the stateless questions (protocol §2). */
export { sessionOperations } from "./session-operations.ts"
export { sessionRoutes } from "./session-routes.ts"
