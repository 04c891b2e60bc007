/** The style sheet, which the page and each element adopt. */
import styles from './styles.css'

export const sheet = new CSSStyleSheet()
sheet.replaceSync(styles)
