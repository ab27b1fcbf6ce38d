"""What can be said: a recipe is text, checked to its last token before anything is built."""
