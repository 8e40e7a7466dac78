/** What commands send: its flags, and the message that is published. */
export { checkMessage, type Message, messageFlags, publish, withdrawContent } from "./message.ts"
