/** Cabinets as resources (protocol §1.5). */
export { cabinetOperations } from "./cabinet-operations.ts"
export { cabinetRoutes } from "./cabinet-routes.ts"
