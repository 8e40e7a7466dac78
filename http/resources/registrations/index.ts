/** Push registrations as resources (protocol §1.4). */
export { describeRegistration, registrationNamed } from "./registration-access.ts"
export { registrationResource } from "./registration-resource.ts"
export { registerForm, registrationElement } from "./registration-views.ts"
export { topicDocument } from "./topic-document.ts"
