/** Content and receipts as resources (protocol §1.1). */
export { sweepOrphans } from "./blob-sweep.ts"
export { contentOperations } from "./content-operations.ts"
export { contentRoutes } from "./content-routes.ts"
export { publishInline } from "./publication.ts"
