/** Push registrations as resources (protocol §1.4). */
export { registrationOperations } from "./registration-operations.ts"
export { registrationRoutes } from "./registration-routes.ts"
export { registerForm } from "./registration-views.ts"
