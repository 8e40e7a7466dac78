/** Cabinets as resources (protocol §1.5). */
export { cabinetResource } from "./cabinet-resource.ts"
export { cabinetDocument, cabinetPath, createForm } from "./cabinet-views.ts"
