/** Cabinets as resources (protocol §1.5). */
export { cabinetResource } from "./cabinet-resource.ts"
export { createForm } from "./cabinet-views.ts"
