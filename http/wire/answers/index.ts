/** Answers that their clients have not read: how they are sent, and the memory they take. */
export { sendRest } from "./answer-rest.ts"
export { type HeldAnswer, placePace, type ReadingPace, UnreadBudget } from "./unread-budget.ts"
