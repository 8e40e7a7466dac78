/** The documentation as the build has rendered it, and the search in it. */
export { type DocsMatch, searchable, type SearchableText, searchTexts } from "./search.ts"
export { type DocsPage, type DocsSite, Documentation, pageTexts } from "./site.ts"
