/** The home page, the service document and fixed files (protocol §6). */
export { homeOperations } from "./home-operations.ts"
export { homeRoutes } from "./home-routes.ts"
