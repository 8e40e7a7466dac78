/** Documents of other standards: Linked Data Notifications. */
export { isLinkedData, linkedDataOf, readLinkedData } from "./linked-data.ts"
