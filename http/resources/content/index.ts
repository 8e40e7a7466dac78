/** Content and receipts as resources (protocol §1.1). */
export { contentOperations } from "./content-operations.ts"
export { contentRoutes } from "./content-routes.ts"
export { contentNames, publishInline } from "./publication.ts"
