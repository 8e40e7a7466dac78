/** Push registrations as resources (protocol §1.4). */
export { registrationResource } from "./registration-resource.ts"
export { registerForm } from "./registration-views.ts"
export { topicDocument } from "./topic-document.ts"
