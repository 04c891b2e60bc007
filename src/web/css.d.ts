/** The build hands over a style sheet as its text. */
declare module '*.css' {
  const text: string
  export default text
}
