"""What is made of the project for people who have not got it: the site, its pictures, the files of a release."""
