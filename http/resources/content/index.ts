/** Content and receipts as resources (protocol §1.1). */
export { contentResource } from "./content-resource.ts"
export { contentNames, publishInline } from "./publication.ts"
